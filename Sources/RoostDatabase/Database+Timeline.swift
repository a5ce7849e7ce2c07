import RoostCore

extension Database {
    /// The setting that holds the timeline on which the rows were written.
    static var timelineSetting: String { "timeline" }

    /// Stores the current timeline if none is stored, as at a first start.
    package func keepTimeline() throws {
        guard let current = try? timeline() else { return }
        _ = try write(lane: 0) { try $0.setting(Self.timelineSetting, orNew: current) }
    }

    /// Returns the current timeline and the stored one if they differ; nil too if one of them is unknown.
    package func changedTimeline() throws -> (current: String, stored: String)? {
        guard let current = try timeline(), let stored = try read({ try $0.setting(Self.timelineSetting) }), stored != current
        else {
            return nil
        }
        return (current, stored)
    }
}
