//! Each fault that the guarantees speak of, on a test server, and what is left of it: the store
//! equals the collection (G1), every registration was given a legal history (G3), the status told
//! of it (G31), and nothing has grown, the number of requests least of all.
//!
//! [`scene::Scene`] is what they have in common. Most run within the process on a paused clock, so
//! that an hour takes no time. What a fault is called in a test of your own is said at
//! `informer_testkit::Faults`.
//!
//! | fault | tests |
//! |---|---|
//! | connection refused | `connections::g01_connections_are_refused`, `connections::g28_many_informers_do_not_come_back_in_step` |
//! | reset in the middle of a frame | `connections::g01_connections_are_reset_in_the_middle_of_a_frame` |
//! | clean close in a loop | `connections::g01_watches_are_closed_cleanly_in_a_loop` |
//! | a socket that stalls | `connections::g01_a_socket_stalls` |
//! | a watch that delivers nothing | `connections::g29_watches_are_deaf` |
//! | slow-drip bytes | `connections::g01_bytes_drip` |
//! | the connection ends instead of an answer | `connections::g01_connections_end_instead_of_an_answer` |
//! | 410 in the stream | `answers::g01_versions_expire_as_an_event` |
//! | 410 as a status | `answers::g01_versions_expire_as_a_status` |
//! | 429 with and without `Retry-After` | `answers::g01_too_many_requests_with_and_without_advice`, `answers::g28_watches_that_are_too_many_go_on_without_a_relist` |
//! | 500 | `answers::g01_the_server_fails_with_500`, `answers::g28_watches_that_are_never_opened_are_replaced_by_lists` |
//! | 503 | `answers::g01_the_server_is_unavailable_with_503`, `connections::g28_many_informers_do_not_list_after_a_moment_of_failures` |
//! | too large version | `answers::g01_the_version_is_too_large` |
//! | expired continue token on each page | `lists::g01_the_continue_token_expires_on_each_page`, `lists::g01_a_history_ends_between_two_pages` |
//! | WatchList refused | `streaming_lists::g27_streaming_lists_are_refused` |
//! | WatchList stalled | `streaming_lists::g27_streaming_lists_stall_before_they_begin`, `streaming_lists::g27_streaming_lists_stall_in_the_middle` |
//! | WatchList always fails | `streaming_lists::g27_streaming_lists_always_fail_in_ordinary_ways` |
//! | the bookmark of a WatchList never sent | `streaming_lists::g27_streaming_lists_never_tell_their_end`, `streaming_lists::g27_streaming_lists_never_tell_their_end_and_are_never_silent` |
//! | a compressed body although not asked for | `frames::g30_bodies_are_compressed_though_nobody_asked` |
//! | truncated frames | `frames::g30_events_are_truncated`, `frames::g30_lists_are_truncated` |
//! | malformed frames | `frames::g30_events_are_malformed`, `frames::g30_lists_are_malformed`, `frames::g30_one_item_of_a_list_is_malformed` |
//! | oversized frames | `frames::g30_events_are_oversized`, `frames::g30_one_item_of_a_list_is_oversized` |
//! | an undecodable object among good ones: in a list | `objects::g30_an_object_in_a_list_cannot_be_decoded` |
//! | … in ADDED | `objects::g30_an_added_object_cannot_be_decoded` |
//! | … in MODIFIED | `objects::g30_a_modified_object_cannot_be_decoded` |
//! | … in DELETED | `objects::g30_a_deleted_object_cannot_be_decoded` |
//! | pages of different versions | `lists::g26_pages_are_of_different_versions` |
//! | duplicate keys in a list | `lists::g01_keys_come_twice` |
//! | a version that goes back (history replaced) | `histories::g26_the_history_is_replaced`, `histories::g26_the_history_is_replaced_while_the_server_is_away` |
//! | a transient 404 | `resources::g32_a_resource_is_not_found_for_a_while` |
//! | a real CRD removal and return | `resources::g32_a_resource_is_removed_and_returns` |
//! | server restart | `connections::g01_the_server_restarts` |
//! | etcd compaction (on a real server: `tests/real_cluster.rs`) | `histories::g01_the_history_is_compacted` |
//! | delete+recreate across a gap | `histories::g05_g06_objects_are_deleted_and_recreated_across_a_gap` |
//! | handler that panics | `handlers::g15_a_handler_panics` |
//! | handler that blocks | `handlers::g15_g16_a_handler_blocks` |
//! | handler that is slow | `handlers::g15_g16_a_handler_is_slow` |
//! | index function that panics | `handlers::g11_an_index_function_panics` |
//! | token expiry (401) | `answers::g01_the_token_expires` |
//! | the clock jumping | `connections::g01_the_clock_jumps` |
//! | several of them, in any order | `mixtures::g01_any_mixture_of_faults` |

mod answers;
mod connections;
mod frames;
mod handlers;
mod histories;
mod lists;
mod mixtures;
mod objects;
mod resources;
mod scene;
mod streaming_lists;
mod table;
