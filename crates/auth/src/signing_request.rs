//! Reading a certificate signing request: who the certificate would be for.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

/// Whom a certificate is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningRequest {
    /// The common name, which becomes the name of the user.
    pub common_name: String,
    /// The organizations, which become groups.
    pub organizations: Vec<String>,
}

impl SigningRequest {
    /// Reads the first request of a PEM text.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn parse(text: &[u8]) -> Result<SigningRequest, String> {
        const WRONG: &str = "PEM block type must be CERTIFICATE REQUEST";
        let mut blocks = Pem::iter_from_buffer(text);
        let block = blocks.next().and_then(Result::ok).ok_or(WRONG)?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(WRONG.to_owned());
        }
        let parsed = X509CertificationRequest::from_der(&block.contents);
        let (_, request) = parsed.map_err(|error| format!("the request is malformed: {error}"))?;
        let subject = &request.certification_request_info.subject;
        let mut names = subject.iter_common_name();
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().unwrap_or_default().to_owned()
        };
        Ok(SigningRequest {
            common_name: names.next().map(text).unwrap_or_default(),
            organizations: subject.iter_organization().map(text).collect(),
        })
    }
}
