import RoostAPI
import RoostCore

/// An operation that reads its own fields where they are written plainly: one that a busy server reads most, or that has many.
///
/// Foundation takes 6 µs for the fields of a short message, and a microsecond for each channel of a resume. Fields that aren't plain, such as a
/// text with an escape, or that the operation doesn't expect are read by Foundation, so that there is one refusal of each kind.
protocol PlainOperation: Handled {
    /// Reads the fields; nil if Foundation has to. The limits are checked afterwards.
    init?(plainly fields: inout PlainJSON)
}

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

extension SendMessage: PlainOperation {
    init?(plainly fields: inout PlainJSON) {
        var (channel, clientId, text): (String?, String?, String?)
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "clientId": json.read(into: &clientId)
            case "text": json.read(into: &text)
            default: false
            }
        }
        guard isPlain, let channel, let clientId, let text else { return nil }
        self.init(channel: ChannelID(channel), clientId: ClientID(clientId), text: text)
    }
}

extension MarkRead: PlainOperation {
    init?(plainly fields: inout PlainJSON) {
        var (channel, seq): (String?, Seq?)
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "seq": json.read(into: &seq)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(channel: ChannelID(channel), seq: seq)
    }
}

extension ListMessages: PlainOperation {
    init?(plainly fields: inout PlainJSON) {
        var (channel, before, after, around, limit): (String?, Seq?, Seq?, Seq?, Seq?)
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "before": json.read(into: &before)
            case "after": json.read(into: &after)
            case "around": json.read(into: &around)
            case "limit": json.read(into: &limit)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(
            channel: ChannelID(channel), before: before, after: after, around: around, limit: limit.map { Int(clamping: $0) })
    }
}

extension Resume: PlainOperation {
    init?(plainly fields: inout PlainJSON) {
        var (after, channels): (Seq?, [String: Seq]?)
        let isPlain = fields.members { key, json in
            switch key {
            case "after": return json.read(into: &after)
            case "channels":
                var positions: [String: Seq] = [:]
                defer { channels = positions }
                return json.members { channel, json in
                    guard let seq = json.number() else { return false }
                    positions[channel] = seq
                    return true
                }
            default: return false
            }
        }
        guard isPlain, let after, let channels else { return nil }
        self.init(after: after, channels: channels)
    }
}
