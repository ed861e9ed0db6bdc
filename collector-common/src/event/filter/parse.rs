//! A filter's text into its tree, with bounded recursion.

use super::error::FilterError;
use super::lex::{self, TEXT_TESTS, Token};
use super::near::near;
use super::{Asked, Comparison, Element, Literal, MOST_DEPTH, Node, Test};

pub(super) fn parse(source: &str) -> Result<Node, FilterError> {
    let mut parser = Parser { source, token: Token::End, start: 0, end: 0, depth: 0 };
    parser.advance()?;
    let root = parser.any()?;
    match parser.token {
        Token::End => Ok(root),
        Token::Close => Err(parser.error("there is no parenthesis to close")),
        _ => Err(parser.error("`and`, `or` or the end was expected")),
    }
}

struct Parser<'a> {
    source: &'a str,
    token: Token<'a>,
    /// Where `token` starts, and where the next may.
    start: usize,
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, message: &str) -> FilterError {
        FilterError::new(self.source, self.start, message)
    }

    /// Takes the word and reads the next.
    fn advance(&mut self) -> Result<Token<'a>, FilterError> {
        let (token, start, end) = lex::next(self.source, self.end)?;
        (self.start, self.end) = (start, end);
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn any(&mut self) -> Result<Node, FilterError> {
        self.chain(&Token::Or, Self::all, Node::Any)
    }

    fn all(&mut self) -> Result<Node, FilterError> {
        self.chain(&Token::And, Self::one, Node::All)
    }

    /// Parts between `separator`s; a single one as itself.
    fn chain(
        &mut self,
        separator: &Token<'_>,
        part: fn(&mut Self) -> Result<Node, FilterError>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Node, FilterError> {
        let first = part(self)?;
        if self.token != *separator {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.token == *separator {
            self.advance()?;
            parts.push(part(self)?);
        }
        Ok(join(parts))
    }

    fn one(&mut self) -> Result<Node, FilterError> {
        if !matches!(self.token, Token::Not | Token::Open) {
            return self.test();
        }
        if self.depth == MOST_DEPTH {
            return Err(self.error("there are too many parentheses or negations within each other"));
        }
        self.depth += 1;
        let opened = self.start;
        let node = if self.advance()? == Token::Not {
            Node::Not(Box::new(self.one()?))
        } else {
            let inner = self.any()?;
            match self.token {
                Token::Close => self.advance()?,
                Token::End => {
                    return Err(FilterError::new(self.source, opened, "the parenthesis is not closed"));
                }
                _ => return Err(self.error("`and`, `or` or `)` was expected")),
            };
            inner
        };
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self) -> Result<Node, FilterError> {
        let field_at = self.start;
        if !matches!(self.token, Token::Name(_)) {
            return Err(self.error("the name of a field was expected"));
        }
        let Token::Name(field) = self.advance()? else { return Err(self.error("a name was expected")) };
        let element = self.element()?;
        if !matches!(self.token, Token::Comparison(_) | Token::TextTest(_) | Token::Mask) {
            return Err(self.no_comparison());
        }
        let operator = self.advance()?;
        let value_at = self.start;
        let asked = match operator {
            Token::Comparison(comparison) => Asked::Compare(comparison, self.literal()?),
            Token::TextTest(test) => match self.literal()? {
                Literal::Text(text) => Asked::Text(test, text),
                _ => return Err(FilterError::new(self.source, value_at, "text in quotes was expected")),
            },
            _ => self.masked()?,
        };
        Ok(Node::Test(Test { field: field.into_owned(), field_at, element, asked, value_at }))
    }

    fn no_comparison(&self) -> FilterError {
        let near = match &self.token {
            Token::Name(word) => near(word, TEXT_TESTS.into_iter()),
            _ => Vec::new(),
        };
        let hint = match near.first() {
            Some(word) => format!("; did you mean `{word}`?"),
            None => String::new(),
        };
        self.error(&format!("a comparison was expected behind the field's name{hint}"))
    }

    /// Which element of a list is meant, in brackets behind its name.
    fn element(&mut self) -> Result<Option<Element>, FilterError> {
        if self.token != Token::OpenElement {
            return Ok(None);
        }
        self.advance()?;
        let at = self.start;
        let Token::Literal(Literal::Integer(number)) = self.token else {
            return Err(self.error("the number of an element was expected, of which the first is 0"));
        };
        let Ok(number) = u64::try_from(number) else {
            return Err(self.error("an element's number is not negative: the first is 0"));
        };
        self.advance()?;
        if self.token != Token::CloseElement {
            return Err(self.error("`]` was expected behind the element's number"));
        }
        self.advance()?;
        Ok(Some(Element { number, at }))
    }

    fn masked(&mut self) -> Result<Asked, FilterError> {
        let mask_at = self.start;
        let Ok(mask) = u64::try_from(self.integer()?) else {
            return Err(FilterError::new(self.source, mask_at, "a mask is not negative"));
        };
        let Token::Comparison(comparison) = self.token else {
            return Ok(Asked::Masked(mask, Comparison::NotEqual, 0));
        };
        self.advance()?;
        Ok(Asked::Masked(mask, comparison, self.integer()?))
    }

    fn integer(&mut self) -> Result<i128, FilterError> {
        let at = self.start;
        match self.literal()? {
            Literal::Integer(value) => Ok(value),
            _ => Err(FilterError::new(self.source, at, "an integer was expected")),
        }
    }

    fn literal(&mut self) -> Result<Literal, FilterError> {
        match &self.token {
            Token::Literal(_) => {}
            Token::Name(name) => {
                let message = format!("a number or text was expected; write text in quotes: '{name}'");
                return Err(self.error(&message));
            }
            _ => return Err(self.error("a number, or text in quotes, was expected")),
        }
        let at = self.start;
        match self.advance()? {
            Token::Literal(literal) => Ok(literal),
            _ => Err(FilterError::new(self.source, at, "a literal was expected")),
        }
    }
}
