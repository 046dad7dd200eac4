//! Content negotiation: which representation an answer has and which a body has.
//!
//! Contract: a router in front of the handlers looks at bare media types only; the handlers then
//! weigh parameters such as `as=Table`. The texts of 406 and 415 tell which of the two refused.

use resources::Error;
use resources::body::Media;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Representation {
    pub media: Media,
    pub pretty: bool,
    pub shape: Shape,
}

/// What the answer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The object or list itself.
    #[default]
    Object,
    /// A table of them.
    Table(MetaVersion),
    /// Their metadata.
    Metadata(MetaVersion),
    /// The metadata of a list.
    MetadataList(MetaVersion),
}

/// The version of the meta types in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What an endpoint can answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Whether answers may be tables.
    pub tables: bool,
    /// Whether answers are protobuf on request.
    pub protobuf: bool,
    /// Whether the endpoint streams.
    pub stream: Stream,
}

/// Whether an endpoint streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Never.
    No,
    /// Lists may be watched, this request does not.
    Offered,
    /// This request is a watch.
    Wanted,
}

/// The answer's representation cannot be agreed on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAcceptable {
    /// No media type of the header is known at all.
    Unknown(Offer),
    /// Known, but not with these parameters.
    Parameters(Offer),
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The text behind 406 and 415 for bodies of built-in kinds.
pub(crate) const BODY_TYPES: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

impl NotAcceptable {
    pub(crate) fn message(&self) -> String {
        match self {
            NotAcceptable::Unknown(offer) => {
                let mut text =
                    format!("406: Not Acceptable\n\nAvailable representations: {BODY_TYPES}");
                if offer.stream != Stream::No {
                    text.push_str(", application/json;stream=watch");
                    text.push_str(", application/vnd.kubernetes.protobuf;stream=watch");
                }
                text
            }
            NotAcceptable::Parameters(offer) => {
                let types = if offer.stream == Stream::Wanted {
                    "application/json;stream=watch, \
                     application/vnd.kubernetes.protobuf;stream=watch"
                } else {
                    BODY_TYPES
                };
                format!("only the following media types are accepted: {types}")
            }
        }
    }
}

/// Picks the representation of an answer.
pub(crate) fn accept(header: Option<&str>, offer: Offer) -> Result<Representation, NotAcceptable> {
    let header = header.unwrap_or_default().trim();
    if header.is_empty() {
        return Ok(Representation::default());
    }
    let clauses = clauses(header);
    if !clauses.iter().any(|clause| known_to_router(clause.media)) {
        return Err(NotAcceptable::Unknown(offer));
    }
    clauses
        .iter()
        .find_map(|clause| clause.representation(offer))
        .ok_or(NotAcceptable::Parameters(offer))
}

/// Picks the representation of a failure, which takes no parameters: JSON unless a clause asks
/// plainly for something else.
pub(crate) fn accept_failure(header: Option<&str>) -> Option<Representation> {
    let header = header.unwrap_or_default().trim();
    if header.is_empty() {
        return Some(Representation::default());
    }
    let offer = Offer {
        tables: false,
        protobuf: true,
        stream: Stream::No,
    };
    clauses(header)
        .iter()
        .find_map(|clause| clause.representation(offer))
}

fn known_to_router(media: &str) -> bool {
    matches!(media, JSON | YAML | PROTOBUF | "*/*")
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

/// The clauses of an Accept header, best first; equal ones keep their order.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header
        .split(',')
        .filter(|clause| !clause.trim().is_empty())
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let mut quality = 1.0;
            let mut parameters = Vec::new();
            for part in parts {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                if key == "q" {
                    quality = value.parse().unwrap_or(1.0);
                } else {
                    parameters.push((key, value));
                }
            }
            Clause {
                media,
                parameters,
                quality,
            }
        })
        .collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

impl Clause<'_> {
    fn parameter(&self, name: &str) -> &str {
        let found = self.parameters.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value.trim_matches('"'))
    }

    fn representation(&self, offer: Offer) -> Option<Representation> {
        let offered = [
            (Media::Json, JSON, true),
            (Media::Yaml, YAML, offer.stream != Stream::Wanted),
            (Media::Protobuf, PROTOBUF, offer.protobuf),
        ];
        offered.into_iter().find_map(|(media, name, available)| {
            let matches = self.media == name || matches!(self.media, "*/*" | "application/*");
            (matches && available)
                .then(|| self.with_parameters(media, offer))
                .flatten()
        })
    }

    fn with_parameters(&self, media: Media, offer: Offer) -> Option<Representation> {
        if !matches!(self.parameter("stream"), "" | "watch") {
            return None;
        }
        let version = match self.parameter("v") {
            "v1" => Some(MetaVersion::V1),
            "v1beta1" => Some(MetaVersion::V1Beta1),
            _ => None,
        };
        let version = version.filter(|_| self.parameter("g") == "meta.k8s.io");
        let shape = match (self.parameter("as"), version) {
            ("", _) => Shape::Object,
            ("Table", Some(version)) if offer.tables && media != Media::Protobuf => {
                Shape::Table(version)
            }
            ("PartialObjectMetadata", Some(version)) if offer.tables => Shape::Metadata(version),
            ("PartialObjectMetadataList", Some(version)) if offer.tables => {
                Shape::MetadataList(version)
            }
            _ => return None,
        };
        let pretty = matches!(self.parameter("pretty"), "1" | "true");
        Some(Representation {
            media,
            pretty,
            shape,
        })
    }
}

/// The media type of a request's body.
pub(crate) fn body_media(header: Option<&str>) -> Result<Media, Error> {
    let refused = || {
        Error::UnsupportedMediaType(format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {BODY_TYPES}"
        ))
    };
    match header
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
    {
        "" | JSON => Ok(Media::Json),
        YAML => Ok(Media::Yaml),
        PROTOBUF => Ok(Media::Protobuf),
        _ => Err(refused()),
    }
}

/// Whether answers are indented: asked for, or asked by a person's client.
pub(crate) fn is_pretty(query: Option<bool>, accept: bool, user_agent: &str) -> bool {
    let person = ["curl", "Wget", "Mozilla/5.0"]
        .iter()
        .any(|name| user_agent.starts_with(name));
    query.unwrap_or(accept || person)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Offer = Offer {
        tables: true,
        protobuf: false,
        stream: Stream::No,
    };

    fn media(header: &str) -> Result<(Media, Shape), String> {
        accept(Some(header), OFFER)
            .map(|it| (it.media, it.shape))
            .map_err(|refused| refused.message())
    }

    #[test]
    fn which_clause_of_an_accept_header_wins() {
        let json = Ok((Media::Json, Shape::Object));
        for header in [
            "",
            "*/*",
            "application/xml, */*",
            "application/json;pretty=1;charset=x",
        ] {
            assert_eq!(media(header), json, "{header}");
        }
        assert_eq!(media("application/json;q=0.1,application/yaml;q=0"), json);
        assert_eq!(media("application/yaml").map(|it| it.0), Ok(Media::Yaml));
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(
            media(kubectl),
            Ok((Media::Json, Shape::Table(MetaVersion::V1)))
        );
        assert_eq!(
            media("application/json;as=Chair;v=v1;g=meta.k8s.io,application/json"),
            json
        );
    }

    #[test]
    fn the_text_tells_who_refused() {
        for header in ["text/html", "application/cbor", "application/*"] {
            assert!(
                media(header)
                    .unwrap_err()
                    .starts_with("406: Not Acceptable"),
                "{header}"
            );
        }
        let refused = media("application/json;as=Chair;v=v1;g=meta.k8s.io").unwrap_err();
        assert!(
            refused.starts_with("only the following media types are accepted:"),
            "{refused}"
        );
    }
}
