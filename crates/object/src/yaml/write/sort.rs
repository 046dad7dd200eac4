//! The order of keys: numbers inside of them count as numbers, and signs come before letters.
//!
//! Contract: `go.yaml.in/yaml/v2` `sorter.go`. It is no total order, which is why we do not hand
//! it to the sort of the standard library: that one may panic.

use std::cmp::Ordering;

use crate::{Map, Text, Value};

/// The entries of a map in natural order of their keys.
pub(super) fn natural(map: &Map) -> Vec<&(Text, Value)> {
    let mut entries: Vec<&(Text, Value)> = map.entries().iter().collect();
    if entries.is_sorted_by(|a, b| compare(&a.0, &b.0) == Ordering::Less) {
        return entries;
    }
    // A merge sort from the bottom up.
    let mut width = 1;
    while width < entries.len() {
        let mut merged = Vec::with_capacity(entries.len());
        for run in entries.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            while let (Some(first), Some(second)) = (left.first(), right.first()) {
                if compare(&second.0, &first.0) == Ordering::Less {
                    merged.push(*second);
                    right = &right[1..];
                } else {
                    merged.push(*first);
                    left = &left[1..];
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        entries = merged;
        width *= 2;
    }
    entries
}

fn compare(a: &str, b: &str) -> Ordering {
    let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let at = (0..=at)
        .rev()
        .find(|&at| a.is_char_boundary(at) && b.is_char_boundary(at));
    let at = at.unwrap_or(0);
    let (rest_a, rest_b) = (&a[at..], &b[at..]);
    let (Some(first_a), Some(first_b)) = (rest_a.chars().next(), rest_b.chars().next()) else {
        return rest_a.len().cmp(&rest_b.len());
    };
    match (first_a.is_alphabetic(), first_b.is_alphabetic()) {
        (true, true) => return first_a.cmp(&first_b),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero after other digits is part of their number, not the start of a new one.
    let starts_inside_number = (first_a == '0' || first_b == '0')
        && a[..at]
            .chars()
            .rev()
            .take_while(char::is_ascii_digit)
            .any(|digit| digit != '0');
    let (number_a, length_a) = leading_number(rest_a, starts_inside_number);
    let (number_b, length_b) = leading_number(rest_b, starts_inside_number);
    number_a
        .cmp(&number_b)
        .then(length_a.cmp(&length_b))
        .then(first_a.cmp(&first_b))
}

fn leading_number(text: &str, starts_inside_number: bool) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(
        (i64::from(starts_inside_number), 0),
        |(number, length), digit| {
            (
                number
                    .wrapping_mul(10)
                    .wrapping_add(i64::from(digit - b'0')),
                length + 1,
            )
        },
    )
}
