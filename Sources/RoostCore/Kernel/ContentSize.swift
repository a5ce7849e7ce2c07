/// A row whose serialized size is known before it is written. The size bounds pages in bytes.
///
/// Client-chosen parts, texts and metadata, are measured with their escapes. The rest is small and counts as a few hundred bytes.
protocol ContentSized {
    /// The serialized size of the row's content, in bytes.
    var contentSizeBytes: Int { get }
}
