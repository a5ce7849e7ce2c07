/// The version of this server.
public enum RoostVersion {
    public static let current = "0.1.0"
}
