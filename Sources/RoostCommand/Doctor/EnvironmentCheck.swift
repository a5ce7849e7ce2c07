/// Whether variables of the environment look like settings and aren't.
struct EnvironmentCheck {
    let settings: Settings

    func findings() -> [Finding] {
        guard !settings.warnings.isEmpty else { return [Finding("environment", .ok, "every ROOST_ variable is known")] }
        return settings.warnings.map { warning in
            // The line goes on with the advice behind a full stop of its own.
            Finding(
                "environment", .warn, String(warning.safe().dropLast()), advice: "Unset it, or give it the name of a setting")
        }
    }
}
