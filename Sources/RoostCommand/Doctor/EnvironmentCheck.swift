/// Checks for environment variables that look like settings and aren't.
struct EnvironmentCheck {
    let settings: Settings

    func findings() -> [Finding] {
        guard !settings.warnings.isEmpty else { return [Finding("environment", .ok, "every ROOST_ variable is known")] }
        return settings.warnings.map { warning in
            Finding("environment", .warn, warning.safe(), advice: "Unset it, or give it the name of a setting")
        }
    }
}
