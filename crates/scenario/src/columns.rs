//! Columns of results, in a form that a data frame takes over without conversion.

/// Named columns of equal length.
pub type Table = Vec<(String, Column)>;

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The values.
    pub data: Data,
    /// For an optional column, the rows that have a value; the other rows hold zero.
    pub valid: Option<Vec<bool>>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Small whole numbers.
    U32(Vec<u32>),
    /// Whole numbers.
    U64(Vec<u64>),
    /// Numbers.
    F64(Vec<f64>),
    /// True or false.
    Flags(Vec<bool>),
    /// Text, as indices into a dictionary.
    Text {
        /// One index per row.
        codes: Vec<u32>,
        /// The texts that the indices refer to.
        dictionary: Vec<String>,
    },
}

impl Data {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Data::U32(values) => values.len(),
            Data::U64(values) => values.len(),
            Data::F64(values) => values.len(),
            Data::Flags(values) => values.len(),
            Data::Text { codes, .. } => codes.len(),
        }
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The value that stands for "no value" in records.
const NONE: u64 = u64::MAX;

impl Column {
    fn full(data: Data) -> Column {
        Column { data, valid: None }
    }

    /// A column of small whole numbers.
    pub fn u32(values: Vec<u32>) -> Column {
        Column::full(Data::U32(values))
    }

    /// A column of whole numbers.
    pub fn u64(values: Vec<u64>) -> Column {
        Column::full(Data::U64(values))
    }

    /// A column of numbers.
    pub fn f64(values: Vec<f64>) -> Column {
        Column::full(Data::F64(values))
    }

    /// A column of flags.
    pub fn flags(values: Vec<bool>) -> Column {
        Column::full(Data::Flags(values))
    }

    /// A column of text, as indices into `dictionary`.
    pub fn text(codes: Vec<u32>, dictionary: Vec<String>) -> Column {
        Column::full(Data::Text { codes, dictionary })
    }

    /// A column of text, as indices into `dictionary`, with empty rows.
    pub fn optional_text(codes: impl Iterator<Item = Option<u32>>, dictionary: &[String]) -> Column {
        let codes: Vec<_> = codes.collect();
        let valid = Some(codes.iter().map(Option::is_some).collect());
        let codes = codes.into_iter().map(Option::unwrap_or_default).collect();
        Column { data: Data::Text { codes, dictionary: dictionary.to_vec() }, valid }
    }

    /// A column of numbers, with empty rows.
    pub fn optional_f64(values: impl Iterator<Item = Option<f64>>) -> Column {
        let values: Vec<_> = values.collect();
        let valid = Some(values.iter().map(Option::is_some).collect());
        Column { data: Data::F64(values.into_iter().map(Option::unwrap_or_default).collect()), valid }
    }

    /// A column of words with few distinct values. The dictionary is in order of appearance.
    pub fn words(words: &[&str]) -> Column {
        let mut dictionary: Vec<String> = Vec::new();
        let codes = words.iter().map(|word| {
            let known = dictionary.iter().position(|other| other == word);
            known.unwrap_or_else(|| {
                dictionary.push((*word).to_owned());
                dictionary.len() - 1
            }) as u32
        });
        let codes = codes.collect();
        Column::text(codes, dictionary)
    }

    /// Whole numbers, in which `u64::MAX` marks an empty row.
    pub fn optional_u64(values: &[u64]) -> Column {
        let data = Data::U64(values.iter().map(|&value| if value == NONE { 0 } else { value }).collect());
        Column { data, valid: Some(values.iter().map(|&value| value != NONE).collect()) }
    }

    /// Picoseconds as seconds.
    pub fn seconds(picoseconds: &[u64]) -> Column {
        Column::f64(picoseconds.iter().map(|&ps| ps as f64 / 1e12).collect())
    }

    /// Picoseconds as seconds, in which `u64::MAX` marks an empty row.
    pub fn optional_seconds(picoseconds: &[u64]) -> Column {
        let seconds = |&ps: &u64| if ps == NONE { 0.0 } else { ps as f64 / 1e12 };
        let data = Data::F64(picoseconds.iter().map(seconds).collect());
        Column { data, valid: Some(picoseconds.iter().map(|&ps| ps != NONE).collect()) }
    }
}
