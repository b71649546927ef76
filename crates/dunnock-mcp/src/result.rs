//! The result of a call, as text and one image.

use base64::Engine as _;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::fmt::Write as _;

/// What a server returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// All texts of it, and what else there was, in words.
    pub text: String,
    /// The first image.
    pub picture: Option<Picture>,
    /// Whether the server says that the call failed.
    pub failed: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture(pub Vec<u8>);

impl CallResult {
    pub(crate) fn of(result: CallToolResult) -> Self {
        let mut text = String::new();
        let mut picture = None;
        let has_text = result.content.iter().any(|part| matches!(part, ContentBlock::Text(_)));
        for part in &result.content {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            match part {
                ContentBlock::Text(part) => text.push_str(&part.text),
                ContentBlock::Image(image) => {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(&image.data);
                    let is_known = bytes
                        .as_ref()
                        .is_ok_and(|bytes| dunnock_proto::picture_kind(bytes).is_some());
                    match bytes {
                        Ok(bytes) if picture.is_none() && is_known => {
                            let _ = write!(text, "[image: {}]", image.mime_type);
                            picture = Some(Picture(bytes));
                        }
                        _ => {
                            let _ = write!(text, "[another image, not shown: {}]", image.mime_type);
                        }
                    }
                }
                ContentBlock::Audio(audio) => {
                    let _ = write!(text, "[audio, not shown: {}]", audio.mime_type);
                }
                ContentBlock::Resource(resource) => match &resource.resource {
                    ResourceContents::TextResourceContents { uri, text: content, .. } => {
                        let _ = write!(text, "[resource {uri}]\n{content}");
                    }
                    ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                        let kind = mime_type.as_deref().unwrap_or("of an unknown type");
                        let _ = write!(
                            text,
                            "[resource {uri}, not shown: {kind}, {} bytes]",
                            blob.len() / 4 * 3
                        );
                    }
                    _ => text.push_str("[a resource in an unknown form]"),
                },
                ContentBlock::ResourceLink(link) => {
                    let about = link.description.as_deref().unwrap_or_default();
                    let _ = write!(text, "[link {}: {}] {about}", link.name, link.uri);
                }
                _ => text.push_str("[a part in an unknown form]"),
            }
        }
        // Servers repeat structured content as text, for clients that do not know it.
        if let Some(structured) = result.structured_content.filter(|_| !has_text) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&structured.to_string());
        }
        if text.is_empty() {
            text.push_str("(no output)");
        }
        Self { text, picture, failed: result.is_error == Some(true) }
    }
}
