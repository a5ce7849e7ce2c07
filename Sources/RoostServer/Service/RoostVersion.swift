/// The version of this server.
package enum RoostVersion {
    package static let current = "0.1.0"
}
