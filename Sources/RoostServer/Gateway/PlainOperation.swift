import RoostAPI
import RoostCore

/// An operation that reads its own fields where they are written plainly: one that a busy server reads most, or that has many.
///
/// Foundation takes 6 µs for the fields of a short message, and a microsecond for each channel of a resume. Plain are texts with any escapes, whole
/// numbers of up to 18 digits, `true`, `false`, `null`, lists and objects; in free JSON every number but `-0` and a whole one with a fraction or an
/// exponent. Fields that aren't plain, such as `1.0` for a limit, or that the operation doesn't expect are read by Foundation, so that there is one
/// refusal of each kind ([0061](docs/decisions/0061-hot-operations-read-their-own-fields.md)).
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
    /// - Parameter bytes: Those that the envelope was read from.
    func plainOperation(in bytes: [UInt8]) -> (any Handled)? {
        guard let fields, let type = Self.plainOperations[operation] else { return nil }
        var json = PlainJSON(bytes, at: fields.lowerBound)
        guard let operation = type.init(plainly: &json), (try? operation.validate()) != nil else { return nil }
        return operation
    }
}
