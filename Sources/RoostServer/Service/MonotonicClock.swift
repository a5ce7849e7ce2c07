import Dispatch

/// The machine's clock that is never set, for time limits and for how long ago something was.
enum MonotonicClock {
    static var milliseconds: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }
}
