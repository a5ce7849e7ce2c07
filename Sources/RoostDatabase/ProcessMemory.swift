import CPageVFS

/// What this process keeps of memory that it doesn't use any more.
public enum ProcessMemory {
    /// From now on large blocks go back to the system when they are freed, instead of being kept for the next one by each thread.
    public static func returnEarly() { roost_return_memory() }
}
