use proptest::prelude::*;

use super::*;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn floats_are_as_in_go() {
    for (value, written) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-2.5, "-2.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e21"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (f64::MAX, "1.7976931348623157e308"),
    ] {
        assert_eq!(text(|out| float(value, out).unwrap()), written);
    }
    assert!(float(f64::NAN, &mut Vec::new()).is_err());
    assert!(float(f64::INFINITY, &mut Vec::new()).is_err());
}

#[test]
fn strings_are_escaped_where_json_asks_for_it_and_go_does_it() {
    let written = text(|out| content("a\"\\\n\r\t\u{0}\u{1f}\u{7f}<>&é\u{2028}".as_bytes(), out));
    assert_eq!(written, "a\\\"\\\\\\n\\r\\t\\u0000\\u001f\u{7f}\\u003c\\u003e\\u0026é\\u2028");
    for plain in ["=", ":", ";", "\u{1c}\u{1e}", "'%$"].map(|it| it.trim_matches(char::is_control))
    {
        assert_eq!(text(|out| content(plain.as_bytes(), out)), plain);
    }
    assert_eq!(text(|out| content(b"a\xc3", out)), "a\u{fffd}");
}

proptest! {
    #[test]
    fn strings_are_read_back(value: String) {
        let written = text(|out| content(value.as_bytes(), out));
        prop_assert_eq!(serde_json::from_str::<String>(&format!("\"{written}\"")).unwrap(), value);
    }

    #[test]
    fn integers_are_read_back(value: i64) {
        prop_assert_eq!(text(|out| integer(value, out)), value.to_string());
    }

    #[test]
    fn floats_are_read_back(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let written = text(|out| float(value, out).unwrap());
        prop_assert!(written.len() < 30);
        prop_assert_eq!(written.parse::<f64>().unwrap(), value);
    }

    #[test]
    fn bytes_are_read_back(bytes: Vec<u8>) {
        let written = text(|out| base64(&bytes, out));
        prop_assert_eq!(crate::encode::bytes(written.trim_matches('"')), Some(bytes));
    }
}
