/// The script with which a shell completes the program's arguments, changed for bash: after a field of `roost call`, such as `kind=`, the parser's
/// own script has bash insert a space, and a backslash before the `=`.
enum CompletionScript {
    private static let registration = "complete -o filenames -F _roost roost"

    /// Returns the parser's script for bash with the change; nil for any other text.
    static func adapted(_ text: String) -> String? {
        guard text.hasPrefix("#!/bin/bash\n"), text.hasSuffix(registration) else { return nil }
        return String(text.dropLast(registration.count)) + #"""
            # The value of a field follows its = without a space.
            _roost_without_space() {
                _roost "${@}"
                [[ "${COMPREPLY[0]}" != *= ]] || compopt -o nospace 2> /dev/null
            }

            complete -F _roost_without_space roost
            """#
    }
}
