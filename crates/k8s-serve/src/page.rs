//! Pages of lists, for servers that play tricks with them.

pub use crate::list::expired_page;
pub use crate::token::{at_newest, page_of};
