use super::*;

#[test]
fn the_table_is_in_order() {
    let kinds: Vec<Kind> = Kind::all().collect();
    for kind in &kinds {
        assert_eq!(Kind::of(kind.api_version(), kind.name()), Some(*kind));
    }
    for message in &table::MESSAGES {
        assert!(message.fields.is_sorted_by(|a, b| a.number < b.number), "{}", message.name);
        for field in message.fields {
            assert!(
                std::ptr::eq(message.field(field.number.into()).unwrap(), field),
                "{}",
                message.name
            );
        }
    }
}

#[test]
fn lists_know_their_items() {
    for (api_version, item) in
        [("v1", "Pod"), ("apps/v1", "Deployment"), ("meta.k8s.io/v1", "PartialObjectMetadata")]
    {
        let list = Kind::of(api_version, &format!("{item}List")).unwrap();
        assert_eq!(list.item(), Kind::of(api_version, item), "{list}");
    }
    assert_eq!(Kind::of("v1", "Pod").unwrap().item(), None);
}

#[test]
fn the_table_has_no_name_for_inline_messages_only() {
    for kind in Kind::all() {
        for field in kind.message().fields {
            assert_eq!(field.name.is_empty(), field.has(flags::INLINE), "{kind} {field:?}");
        }
    }
}
