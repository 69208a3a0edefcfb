//! Pages of lists, for servers that play tricks with them.

use crate::status::Status;
use crate::token;

/// The continue token of a page, in the extensions of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextPage(pub String);

/// The query of a request, with its continue token replaced by one that goes on with the newest
/// state.
#[must_use]
pub fn at_newest(query: &str) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match token::at_newest(&value).filter(|_| name == "continue") {
            Some(token) => out.append_pair(&name, &token),
            None => out.append_pair(&name, &value),
        };
    }
    out.finish()
}

/// The answer to a page whose token is too old. It comes with another token, for clients that can
/// do without consistency. `None` if the token is none.
#[must_use]
pub fn expired_page(token: &str) -> Option<Status> {
    let token = token::at_newest(token)?;
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - objects \
         that were created, modified, or deleted between the time the first chunk was returned and now may show \
         up in the list.",
    );
    status.continue_token = Some(token);
    Some(status)
}
