import CPageVFS

/// The name by which `top -H`, `ps -L` and `perf` show a thread. Foundation's `Thread.name` doesn't reach the system on Linux.
public enum ThreadName {
    /// Names the calling thread. The system keeps 15 bytes.
    public static func set(_ name: String) { roost_name_thread(name) }
}
