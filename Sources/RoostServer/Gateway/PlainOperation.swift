import RoostAPI
import RoostCore

/// An operation that reads its own fields if they are written plainly: one that is frequent on a busy server, or has many fields.
///
/// Foundation takes 6 µs for the fields of a short message, and 1 µs for each channel of a resume. Plain values are strings with any escapes,
/// whole numbers of up to 18 digits, `true`, `false`, `null`, lists and objects; in free-form JSON, also every number but `-0` and whole ones
/// with a fraction or an exponent. Fields that aren't plain, such as `1.0` for a limit, or that the operation doesn't expect are read by
/// Foundation, so each kind of refusal exists only once ([0061](docs/decisions/0061-hot-operations-read-their-own-fields.md)).
///
/// The limits are checked afterwards.
protocol PlainOperation: Handled, PlainReadable {}

extension SendMessage: PlainOperation {}
extension EditMessage: PlainOperation {}
extension ListMessages: PlainOperation {}
extension MarkRead: PlainOperation {}
extension Resume: PlainOperation {}
extension StartTyping: PlainOperation {}
extension StopTyping: PlainOperation {}
extension UnwatchChannel: PlainOperation {}
extension WatchChannel: PlainOperation {}

extension CallEnvelope {
    private static let plainOperations: [String: any PlainOperation.Type] = Dictionary(
        uniqueKeysWithValues: OperationTable.handled.compactMap { $0 as? any PlainOperation.Type }.map { ($0.name, $0) })

    /// Returns the operation, if it reads its own fields and they are written plainly and within its limits.
    ///
    /// - Parameter bytes: The bytes that the envelope was read from.
    func plainOperation(in bytes: [UInt8]) -> (any Handled)? {
        guard let fields, let type = Self.plainOperations[operation] else { return nil }
        var json = PlainJSON(bytes, at: fields.lowerBound)
        guard let operation = type.init(plainly: &json), (try? operation.validate()) != nil else { return nil }
        return operation
    }
}
