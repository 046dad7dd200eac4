//! Policies and webhooks that change or refuse a write.
//!
//! This room knows what a webhook is asked and what its answer means; which objects there are, and
//! what a changed object must look like, is the business of whoever asks. [`client`] calls a
//! webhook of any kind, [`webhook`] decides which admission webhooks a request concerns,
//! [`review`] writes the question and reads the answer, [`conversion`] does both for custom
//! resources that are served in several versions. [`policy`] has the policies that are written
//! down as expressions and need nobody to be called.

pub mod attributes;
pub mod client;
pub mod conversion;
pub mod expression;
pub mod matching;
pub mod metrics;
pub mod policy;
pub mod review;
pub mod webhook;
