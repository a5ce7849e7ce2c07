import ArgumentParser
import Configuration
import Foundation
import RoostAPI
import RoostServer

/// The sources of settings, the strongest first: flags, the environment, the configuration file.
///
/// Each source has its own reader, so that a value's source is known.
struct SettingSources {
    /// The source of a value.
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
        /// The values of a JSON file, whose types the reader converts too freely: it reads `true` as 1. Nil for text.
        var values: [String: JSONValue]?
    }

    /// A value in a JSON file is of another type than its setting.
    private struct OtherType: Error {}

    private var sources: [Source]

    /// Variables that belong to other commands, and those of tests.
    private static let otherVariables: Set = [
        "ROOST_CONFIG", "ROOST_TOKEN", "ROOST_URL", "ROOST_BINARY", "ROOST_CRASHES", "ROOST_SEED",
    ]

    /// Warnings about the environment: variables that look like settings and aren't.
    let warnings: [String]
    /// Warnings about values that count as their maximum, which was higher in an earlier version.
    private(set) var lowered: [String] = []

    init(flags: [String: String], environment: [String: String]) {
        let (environment, warnings) = Self.withoutUnknownVariables(environment)
        self.warnings = warnings
        sources = [
            Source(
                origin: { .flag($0.name) },
                reader: ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: Self.asEnvironment(flags)))),
            Source(
                origin: { .environment($0.environmentName) },
                reader: ConfigReader(provider: EnvironmentVariablesProvider(environmentVariables: environment)).scoped(to: "roost")),
        ]
    }

    /// Removes variables that aren't settings, each with a warning: misspelt names, and those that Kubernetes gives to every container next
    /// to a service named roost: `ROOST_SERVICE_HOST`, and `ROOST_PORT`, which isn't a port there but `tcp://10.0.0.7:8080`.
    private static func withoutUnknownVariables(
        _ environment: [String: String]
    ) -> (environment: [String: String], warnings: [String]) {
        let settings = Dictionary(uniqueKeysWithValues: Setting.all.map { ($0.environmentName, $0) })
        var environment = environment
        var warnings: [String] = []
        var links: [String] = []
        for (name, value) in environment.sorted(by: { $0.key < $1.key }) where name.hasPrefix("ROOST_") {
            if name.hasPrefix("ROOST_TEST_") || otherVariables.contains(name) { continue }
            let isNumber = settings[name].map { if case .text = $0.kind { false } else { true } } ?? true
            if isServiceLink(name, value), isNumber {
                links.append(name)
                environment[name] = nil
            } else if settings[name] == nil {
                let suggestion = Setting.suggestion(for: name, among: settings.keys.sorted())
                warnings.append("The environment variable \(name) isn't a setting and is ignored. \(suggestion)")
                environment[name] = nil
            }
        }
        if !links.isEmpty {
            warnings.append(
                "\(links.joined(separator: ", ")): Kubernetes sets these for a service of that name. They aren't settings and are ignored; "
                    + "enableServiceLinks: false in the pod's spec removes them.")
        }
        return (environment, warnings)
    }

    /// Returns whether a variable is one that Kubernetes sets for a service.
    private static func isServiceLink(_ name: String, _ value: String) -> Bool {
        if value.wholeMatch(of: /(tcp|udp|sctp):\/\/[^\/\s]+:[0-9]+/) != nil { return name.contains("_PORT") }
        return name.wholeMatch(of: /ROOST_([A-Z0-9_]+_)?SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)/) != nil
            || name.wholeMatch(of: /ROOST_([A-Z0-9_]+_)?PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?/) != nil
    }

    /// Flags are text like environment variables, and are converted to numbers by the same rules.
    private static func asEnvironment(_ flags: [String: String]) -> [String: String] {
        Dictionary(uniqueKeysWithValues: flags.map { ($0.uppercased().replacing("-", with: "_"), $1) })
    }

    /// Adds a JSON file, as the weakest source.
    mutating func add(file path: String) async throws {
        let values: [String: JSONValue]
        do { values = try StrictFile.object(in: URL(filePath: path)) } catch {
            throw Failure("The configuration file \(path) \(error)".safe())
        }
        let known = Setting.all.map(\.name)
        for key in values.keys.sorted() where !known.contains(key) {
            throw Failure("\(path): the key \(key) is unknown. \(Setting.suggestion(for: key, among: known))")
        }
        let location = ConfigReader(provider: InMemoryProvider(values: ["filePath": ConfigValue(.string(path), isSecret: false)]))
        do {
            let provider = try await FileProvider<JSONSnapshot>(config: location)
            sources.append(Source(origin: { _ in .file(path) }, reader: ConfigReader(provider: provider), values: values))
        } catch {
            throw Failure("The configuration file \(path) can't be used: \(error)")
        }
    }

    /// Returns the value of a setting and its source; nil if no source has it. A value that was valid in an earlier version may count as
    /// the maximum; it is then in ``lowered``.
    ///
    /// - Throws: A ``Failure``, or for a flag a `ValidationError`, that names the setting, the source and the limit of a value that isn't valid.
    mutating func value(of setting: Setting) async throws -> (Setting.Value, Origin)? {
        let key = ConfigKey([setting.name])
        for source in sources {
            let origin = source.origin(setting)
            let value: Setting.Value?
            do {
                if let given = source.values?[setting.name], !setting.kind.matchesType(of: given) { throw OtherType() }
                value =
                    switch setting.kind {
                    case .text, .choice, .origins, .networks:
                        try await source.reader.fetchString(forKey: key).map(Setting.Value.text)
                    case .whole, .wholeOrNone: try await source.reader.fetchInt(forKey: key).map(Setting.Value.whole)
                    case .flag: try await source.reader.fetchBool(forKey: key).map(Setting.Value.flag)
                    case .seconds: try await source.reader.fetchDouble(forKey: key).map(Setting.Value.seconds)
                    }
            } catch {
                let text = (try? await source.reader.fetchString(forKey: key)) ?? nil
                throw Self.mistake(setting, text, origin, setting.kind.typeRequirement)
            }
            guard let value else { continue }
            if let most = setting.maximum(insteadOf: value) {
                lowered.append("\(setting.name) is '\(value)' (from \(origin)), which exceeds the maximum; \(most) is used.")
                return (.whole(most), origin)
            }
            guard setting.kind.refusal(of: value) == nil else { throw Self.mistake(setting, "\(value)", origin) }
            return (value, origin)
        }
        return nil
    }

    /// The error for an invalid value. For a flag it is a usage error, with its exit code.
    ///
    /// - Parameter requirement: The requirement to state; nil for the setting's own.
    private static func mistake(
        _ setting: Setting, _ value: String?, _ origin: Origin, _ requirement: String? = nil
    ) -> any Error {
        let unit = setting.unit.map { $0 == "s" ? ", in seconds" : ", in \($0)" } ?? ""
        let requirement = "\(requirement ?? setting.kind.requirement)\(unit) (from \(origin))."
        let shown = (value ?? "").safe()
        let text = shown.isEmpty ? "\(setting.name) \(requirement)" : "\(setting.name) is '\(shown)'; it \(requirement)"
        if case .flag = origin { return ValidationError(text) }
        return Failure(text)
    }
}
