//! The engine seen from outside: what is written, what follows, who owns it.

extern crate windlass_apply as apply;

mod documents;
mod golden;
mod kubectl;
mod limits;
mod managers;
mod properties;
mod scenarios;
mod support;
mod walkers;
