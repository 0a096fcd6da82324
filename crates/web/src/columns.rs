//! JSON with columns: numbers that JavaScript receives as typed arrays.
//!
//! In the JSON, each column is an object `{"$column": N}`, which JavaScript replaces by the Nth array. Results with
//! millions of numbers thus need neither text nor an object for each number.

use sparelane_scenario::columns::Table;
use sparelane_scenario::{Data as Values, Json};

/// The code of a row without text.
pub const NO_TEXT: u32 = u32::MAX;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A `Float64Array`.
    F64(Vec<f64>),
    /// A `Uint32Array`.
    U32(Vec<u32>),
    /// A `Uint8Array`.
    U8(Vec<u8>),
}

/// The columns that a JSON value refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(pub Vec<Data>);

impl Columns {
    /// Adds a column, and returns the JSON that refers to it.
    pub fn put(&mut self, data: Data) -> Json {
        self.0.push(data);
        Json::object([("$column", Json::whole(self.0.len() as u32 - 1))])
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, values: Vec<f64>) -> Json {
        self.put(Data::F64(values))
    }

    /// Adds all columns of a table. Rows without a value have NaN, or [`NO_TEXT`].
    pub fn table(&mut self, table: Table) -> Json {
        let rows = table.first().map_or(0, |(_, column)| column.data.len());
        let columns = table.into_iter().map(|(name, column)| {
            let valid = column.valid;
            let with_gaps = |mut values: Vec<f64>| {
                let flags = valid.iter().flatten();
                values.iter_mut().zip(flags).filter(|(_, valid)| !**valid).for_each(|(value, _)| *value = f64::NAN);
                values
            };
            let json = match column.data {
                Values::U32(values) => self.plain("number", with_gaps(values.into_iter().map(f64::from).collect())),
                Values::U64(values) => {
                    self.plain("number", with_gaps(values.into_iter().map(|value| value as f64).collect()))
                }
                Values::F64(values) => self.plain("number", with_gaps(values)),
                Values::Flags(values) => {
                    self.plain("flag", with_gaps(values.into_iter().map(|flag| f64::from(u8::from(flag))).collect()))
                }
                Values::Text { mut codes, dictionary } => {
                    let flags = valid.iter().flatten();
                    codes.iter_mut().zip(flags).filter(|(_, valid)| !**valid).for_each(|(code, _)| *code = NO_TEXT);
                    Json::object([
                        ("type", Json::text("text")),
                        ("codes", self.put(Data::U32(codes))),
                        ("dictionary", Json::List(dictionary.into_iter().map(Json::Text).collect())),
                    ])
                }
            };
            (name, json)
        });
        let columns = columns.collect();
        Json::object([("rows", Json::whole(rows as u64)), ("columns", Json::Object(columns))])
    }

    fn plain(&mut self, kind: &str, values: Vec<f64>) -> Json {
        Json::object([("type", Json::text(kind)), ("values", self.numbers(values))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_scenario::Column;

    #[test]
    fn columns_leave_the_json_and_gaps_become_nan() {
        let words = ["a".to_owned(), "b".to_owned()];
        let table = vec![
            ("n".to_owned(), Column::optional_u64(&[7, u64::MAX])),
            ("t".to_owned(), Column::optional_text([None, Some(1)].into_iter(), &words)),
        ];
        let mut columns = Columns::default();
        let json = columns.table(table).to_string();
        assert_eq!(
            json,
            r#"{"rows":2,"columns":{"n":{"type":"number","values":{"$column":0}},"t":{"type":"text","codes":{"$column":1},"dictionary":["a","b"]}}}"#
        );
        let Data::F64(numbers) = &columns.0[0] else { panic!("numbers") };
        assert!(numbers[0] == 7.0 && numbers[1].is_nan(), "{numbers:?}");
        assert_eq!(columns.0[1], Data::U32(vec![NO_TEXT, 1]));
    }
}
