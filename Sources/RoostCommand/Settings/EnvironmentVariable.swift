import Foundation

extension ProcessInfo {
    /// Returns a variable of the environment; nil if it is empty, as a shell leaves it when `ROOST_TOKEN=$(roost token …)` fails.
    func variable(_ name: String) -> String? { environment.variable(name) }
}

extension [String: String] {
    /// Returns a variable of this environment; nil if it is empty.
    func variable(_ name: String) -> String? { self[name].flatMap { $0.isEmpty ? nil : $0 } }
}
