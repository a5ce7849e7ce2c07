import Configuration
import Foundation

/// Where settings come from, the strongest first: flags, the environment, the configuration file.
///
/// Each source has a reader of its own, so that the one that answered is known.
struct SettingSources {
    /// Where a value came from.
    enum Origin: Hashable, Sendable, CustomStringConvertible {
        case flag(String)
        case environment(String)
        case file(String)
        case standard

        var description: String {
            switch self {
            case .flag(let name): "--\(name)"
            case .environment(let name): name
            case .file(let path): path
            case .standard: "default"
            }
        }
    }

    private struct Source {
        let origin: @Sendable (Setting) -> Origin
        let reader: ConfigReader
    }

    private var sources: [Source]

    /// Variables that belong to other commands, and those of tests.
    private static let otherVariables: Set = [
        "ROOST_CONFIG", "ROOST_TOKEN", "ROOST_URL", "ROOST_BINARY", "ROOST_CRASHES", "ROOST_SEED",
    ]

    init(flags: [String: String], environment: [String: String]) throws {
        let known = Setting.all.map(\.environmentName)
        for name in environment.keys.sorted() where name.hasPrefix("ROOST_") && !name.hasPrefix("ROOST_TEST_") {
            guard known.contains(name) || Self.otherVariables.contains(name) else {
                throw Failure("The environment variable \(name) is unknown. \(Setting.suggestion(for: name, among: known))")
            }
        }
        sources = [
            Source(
                origin: { .flag($0.name) },
                reader: ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: Self.asEnvironment(flags)))),
            Source(
                origin: { .environment($0.environmentName) },
                reader: ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: environment)).scoped(to: "roost")),
        ]
    }

    /// Flags come as text like the variables of an environment, and are turned into numbers by the same rules.
    private static func asEnvironment(_ flags: [String: String]) -> [String: String] {
        Dictionary(uniqueKeysWithValues: flags.map { ($0.uppercased().replacing("-", with: "_"), $1) })
    }

    /// Adds a JSON file, as the weakest source.
    mutating func add(file path: String) async throws {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Failure("The configuration file \(path) can't be read.")
        }
        guard let object = try? JSONSerialization.jsonObject(with: data), let keys = (object as? [String: Any])?.keys else {
            throw Failure("The configuration file \(path) isn't a JSON object.")
        }
        let known = Setting.all.map(\.name)
        for key in keys.sorted() where !known.contains(key) {
            throw Failure("\(path): the key \(key) is unknown. \(Setting.suggestion(for: key, among: known))")
        }
        let location = ConfigReader(provider: InMemoryProvider(values: ["filePath": ConfigValue(.string(path), isSecret: false)]))
        do {
            let provider = try await FileProvider<JSONSnapshot>(config: location)
            sources.append(Source(origin: { _ in .file(path) }, reader: ConfigReader(provider: provider)))
        } catch {
            throw Failure("The configuration file \(path) can't be used: \(error)")
        }
    }

    /// The value of a setting and where it came from; nil when no source has it.
    ///
    /// - Throws: a ``Failure`` that names the setting, the source and the limit of a value that isn't lawful.
    func value(of setting: Setting) async throws -> (Setting.Value, Origin)? {
        let key = ConfigKey([setting.name])
        for source in sources {
            let origin = source.origin(setting)
            let value: Setting.Value?
            do {
                value =
                    switch setting.kind {
                    case .text, .choice: try await source.reader.fetchString(forKey: key).map(Setting.Value.text)
                    case .whole: try await source.reader.fetchInt(forKey: key).map(Setting.Value.whole)
                    case .flag: try await source.reader.fetchBool(forKey: key).map(Setting.Value.flag)
                    case .seconds: try await source.reader.fetchDouble(forKey: key).map(Setting.Value.seconds)
                    }
            } catch {
                throw Failure("\(setting.name) \(setting.kind.requirement) (from \(origin)).")
            }
            guard let value else { continue }
            if let refusal = setting.kind.refusal(of: value) {
                throw Failure("\(setting.name) \(refusal), not \(value) (from \(origin)).")
            }
            return (value, origin)
        }
        return nil
    }
}
