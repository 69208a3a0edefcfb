//! The encoding of a response body, according to its headers.

use super::MediaType;

/// A response body that cannot be read, according to its headers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The body is compressed, or otherwise encoded.
    #[error("the body is encoded as {encoding:?}")]
    Encoded {
        /// The value of `Content-Encoding`, at most 128 characters of it.
        encoding: String,
    },
    /// The media type is unknown.
    #[error(
        "the answer is of the type {content_type:?}, neither JSON nor protobuf; is it an API server that answers?"
    )]
    UnknownType {
        /// The value of `Content-Type`, without parameters, at most 128 characters of it.
        content_type: String,
    },
    /// The media type was not requested.
    #[error("the answer is {found}, which was not asked for; allow both with WireFormat::Auto")]
    NotAccepted {
        /// The media type of the response.
        found: MediaType,
    },
}

impl MediaType {
    /// The encoding of a response body with these headers. Without `Content-Type` it is JSON, the
    /// default of API servers. If `accepted` has JSON, the other encodings are accepted, too.
    ///
    /// # Errors
    /// If the body cannot be read, or its media type is not accepted.
    ///
    /// # Examples
    /// ```
    /// use informer_core::wire::MediaType;
    ///
    /// let json = Some("application/json");
    /// assert_eq!(MediaType::of_answer(json, None, &MediaType::ALL), Ok(MediaType::Json));
    /// let error = MediaType::of_answer(json, Some("gzip"), &MediaType::ALL).unwrap_err();
    /// assert_eq!(error.to_string(), r#"the body is encoded as "gzip""#);
    /// ```
    pub fn of_answer(
        content_type: Option<&str>,
        content_encoding: Option<&str>,
        accepted: &[Self],
    ) -> Result<Self, AnswerError> {
        let shortened = |text: &str| text.trim().chars().take(128).collect();
        if let Some(encoding) = content_encoding.filter(|encoding| *encoding != "identity") {
            return Err(AnswerError::Encoded { encoding: shortened(encoding) });
        }
        let found = match content_type {
            None => Self::Json,
            Some(value) => Self::parse(value).ok_or_else(|| AnswerError::UnknownType {
                content_type: shortened(value.split(';').next().unwrap_or_default()),
            })?,
        };
        match accepted.contains(&found) || accepted.contains(&Self::Json) {
            true => Ok(found),
            false => Err(AnswerError::NotAccepted { found }),
        }
    }
}
