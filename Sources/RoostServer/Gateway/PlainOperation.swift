import RoostAPI
import RoostCore

/// An operation that reads its own fields where they are written plainly: one that a busy server reads most, or that has many.
///
/// Foundation takes 6 µs for the fields of a short message, and a microsecond for each channel of a resume. Fields that aren't plain, such as
/// a number with a fraction, or that the operation doesn't expect are read by Foundation, so that there is one refusal of each kind.
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
        var (channel, clientId): (String?, String?)
        var content = PlainContent()
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "clientId": json.read(into: &clientId)
            default: content.read(key, &json)
            }
        }
        guard isPlain, let channel, let clientId, let text = content.text else { return nil }
        self.init(
            channel: ChannelID(channel), clientId: ClientID(clientId), text: text, kind: content.kind ?? .text,
            customType: content.customType, data: content.data, metadata: content.metadata, tags: content.tags,
            parentId: content.parentId, mentionees: content.mentionees, metaArrays: content.metaArrays,
            pushOption: content.pushOption ?? .default, targetLanguages: content.targetLanguages,
            isSilent: content.isSilent ?? false)
    }
}

extension EditMessage: PlainOperation {
    init?(plainly fields: inout PlainJSON) {
        var (channel, message): (String?, MessageID?)
        var content = PlainContent()
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "message": json.read(into: &message)
            case "text", "customType", "data", "metadata", "tags", "mentionees": content.read(key, &json)
            default: false
            }
        }
        guard isPlain, let channel, let message else { return nil }
        self.init(
            channel: ChannelID(channel), message: message, text: content.text, customType: content.customType, data: content.data,
            metadata: content.metadata, tags: content.tags, mentionees: content.mentionees)
    }
}

/// The fields of a message's content, as far as they were read.
private struct PlainContent {
    var (text, customType, data): (String?, String?, String?)
    var (kind, pushOption, isSilent): (MessageKind?, PushOption?, Bool?)
    var metadata: JSONValue?
    var (tags, targetLanguages): ([String]?, [String]?)
    var parentId: MessageID?
    var mentionees: [Mentionee]?
    var metaArrays: [String: [String]]?

    /// Reads a field. Returns whether there is such a one, and it is written plainly.
    mutating func read(_ key: String, _ json: inout PlainJSON) -> Bool {
        switch key {
        case "text": return json.read(into: &text)
        case "customType": return json.read(into: &customType)
        case "data": return json.read(into: &data)
        case "tags": return json.read(into: &tags)
        case "targetLanguages": return json.read(into: &targetLanguages)
        case "kind": return json.read(into: &kind)
        case "pushOption": return json.read(into: &pushOption)
        case "isSilent": return json.read(into: &isSilent)
        case "parentId": return json.read(into: &parentId)
        case "metadata": return json.read(into: &metadata)
        case "mentionees": return json.read(into: &mentionees)
        case "metaArrays": return json.read(into: &metaArrays)
        default: return false
        }
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
        var aroundMessage: MessageID?
        var (beforeTime, afterTime, aroundTime): (Timestamp?, Timestamp?, Timestamp?)
        let isPlain = fields.members { key, json in
            switch key {
            case "channel": json.read(into: &channel)
            case "before": json.read(into: &before)
            case "after": json.read(into: &after)
            case "around": json.read(into: &around)
            case "aroundMessage": json.read(into: &aroundMessage)
            case "beforeTime": json.read(into: &beforeTime)
            case "afterTime": json.read(into: &afterTime)
            case "aroundTime": json.read(into: &aroundTime)
            case "limit": json.read(into: &limit)
            default: false
            }
        }
        guard isPlain, let channel else { return nil }
        self.init(
            channel: ChannelID(channel), before: before, after: after, around: around, aroundMessage: aroundMessage,
            beforeTime: beforeTime, afterTime: afterTime, aroundTime: aroundTime, limit: limit.map { Int(clamping: $0) })
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
