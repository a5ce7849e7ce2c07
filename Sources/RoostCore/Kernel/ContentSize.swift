/// A row whose written size is known before writing it: it bounds pages in bytes.
///
/// The parts that a client chose, texts and metadata, are measured with their escapes. The rest is small and counts as a few hundred bytes.
protocol ContentSized {
    /// How many bytes the row's content takes as it is written.
    var contentSizeBytes: Int { get }
}
