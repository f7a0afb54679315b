"use strict";
// Runs a script over rows. A row comes as a list of texts, one for each column, and goes as one; what
// a text is stands in `transforms/script/values.py`. Evaluated before the script, and out of its reach.
(function (inputs, outputs) {
  const {parse, stringify} = JSON, {isArray} = Array, {keys} = Object, {isInteger, isSafeInteger} = Number;
  const WHOLE = /^[+-]?[0-9]+$/, NUMBER = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
  const SPECIAL = {inf: Infinity, "-inf": -Infinity, nan: NaN};

  class Unfit extends Error {}

  const shown = (value) => {
    if (typeof value === "string") return stringify(value.length > 60 ? value.slice(0, 60) + "…" : value);
    if (value === null) return "null";
    if (typeof value === "object") return isArray(value) ? "a list" : "an object";
    return typeof value === "function" || typeof value === "symbol" ? `a ${typeof value}` : String(value);
  };
  const unfit = (value, type) => { throw new Unfit(`${shown(value)} is no ${type}`); };

  const ofDate = (value, type) => {
    if (isNaN(value.getTime())) throw new Unfit(`a Date without a time is no ${type.name}`);
    return value.toISOString();
  };
  const OFFSET = /^(.*?[0-9])(\.[0-9]+)?\s*([+-])([0-9]{2}):?([0-9]{2})?$/;
  const inUtc = (text) => {
    const found = text.includes(":") ? OFFSET.exec(text) : null;
    if (found === null) return text;
    const [, time, fraction, sign, hours, minutes] = found;
    const of = Date.parse(`${time.replace(" ", "T")}Z`) - `${sign}1` * (hours * 60 + Number(minutes ?? 0)) * 60000;
    return isNaN(of) ? text : new Date(of).toISOString().slice(0, -5) + (fraction ?? "") + "Z";
  };

  // Each type: what a text is to the script, and the text of what the script gives; `null` is neither.
  const CODECS = {
    text: {
      from: (text) => text,
      to: (value, type) => typeof value === "string" ? value
        : typeof value === "number" || typeof value === "boolean" || typeof value === "bigint" ? String(value)
        : value instanceof Date ? ofDate(value, type) : unfit(value, type.name),
    },
    boolean: {
      from: (text) => text === "true",
      to: (value, type) => typeof value === "boolean" ? String(value) : unfit(value, type.name),
    },
    whole: {
      from: (text) => { const number = Number(text); return isSafeInteger(number) ? number : BigInt(text); },
      to: (value, type) => {
        if (typeof value === "bigint") return String(value);
        if (typeof value === "number" && isInteger(value)) return String(BigInt(value));
        return typeof value === "string" && WHOLE.test(value) ? value : unfit(value, type.name);
      },
    },
    number: {
      from: (text) => text in SPECIAL ? SPECIAL[text] : Number(text),
      to: (value, type) => {
        if (typeof value === "number") return value !== value ? "nan" : String(value);
        if (typeof value === "bigint") return String(value);
        return typeof value === "string" && NUMBER.test(value) ? value : unfit(value, type.name);
      },
    },
    decimal: {
      from: (text) => text,
      to: (value, type) => {
        if (typeof value === "number" && value - value === 0) return String(value);
        if (typeof value === "bigint") return String(value);
        return typeof value === "string" && NUMBER.test(value) ? value : unfit(value, type.name);
      },
    },
    timestamp: {
      from: (text) => text.replace(" ", "T").replace(/(\+00)?$/, "Z"),
      to: (value, type) => value instanceof Date ? ofDate(value, type)
        : typeof value === "string" ? inUtc(value) : unfit(value, type.name),
    },
    written: {
      from: (text) => text,
      to: (value, type) => typeof value === "string" ? value : unfit(value, type.name),
    },
    json: {
      from: (text) => text,
      to: (value) => typeof value === "string" ? value : stringify(value),
    },
    list: {
      from: (values, type) => values.map((each) => given(each, type.of)),
      to: (value, type) => isArray(value) ? value.map((each) => made(each, type.of)) : unfit(value, type.name),
    },
    struct: {
      from: (fields, type) => {
        const found = {};
        for (const field of type.of) found[field.key] = given(fields[field.key], field);
        return found;
      },
      to: (value, type) => {
        if (typeof value !== "object" || isArray(value)) unfit(value, type.name);
        const found = {}, known = type.known;
        for (const key of keys(value)) if (!known.has(key)) throw new Unfit(`it has no field '${key}'`);
        for (const field of type.of) found[field.key] = made(value[field.key], field);
        return found;
      },
    },
    map: {
      from: (pairs, type) => new Map(pairs.map((pair) => [given(pair.k, type.of[0]), given(pair.v, type.of[1])])),
      to: (value, type) => {
        if (typeof value !== "object" || isArray(value)) unfit(value, type.name);
        const pairs = value instanceof Map ? [...value] : Object.entries(value);
        return pairs.map(([k, v]) => ({k: made(k, type.of[0]), v: made(v, type.of[1])}));
      },
    },
  };
  const prepared = (type) => {
    const codec = CODECS[type.kind];
    const found = {...type, from: codec.from, to: codec.to};
    if (type.kind === "list") found.of = prepared(type.of);
    if (type.kind === "struct" || type.kind === "map") found.of = type.of.map(prepared);
    if (type.kind === "struct") found.known = new Set(type.of.map((field) => field.key));
    return found;
  };
  const given = (value, type) => value === null || value === undefined ? null : type.from(value, type);
  const made = (value, type) => value === null || value === undefined ? null : type.to(value, type);
  const nested = (type) => type.kind === "list" || type.kind === "struct" || type.kind === "map";

  const columns = parse(inputs).map(prepared), results = parse(outputs).map(prepared);
  const known = new Set([...columns, ...results].map((each) => each.key));  // those that schema takes away, too

  const entered = (texts) => {
    const row = {};
    for (let i = 0; i < columns.length; i++) {
      const column = columns[i], text = texts[i];
      row[column.key] = text === null ? null : column.from(nested(column) ? parse(text) : text, column);
    }
    return row;
  };
  const left = (row) => {
    if (typeof row !== "object" || row === null || isArray(row)) throw new Unfit(`it gives ${shown(row)}, and no row`);
    for (const key of keys(row)) {
      if (!known.has(key)) throw new Unfit(`it sets '${key}', which is no column: name it in schema`);
    }
    const texts = new Array(results.length);
    for (let i = 0; i < results.length; i++) {
      const column = results[i], value = row[column.key];
      if (value === null || value === undefined) { texts[i] = null; continue; }
      try {
        const text = column.to(value, column);
        texts[i] = nested(column) ? stringify(text) : text;
      } catch (error) {
        if (error instanceof Unfit) error.message = `column '${column.key}': ${error.message}`;
        throw error;
      }
    }
    return stringify(texts);
  };
  const results_of = (value) => {
    if (value === null) return [];
    if (value === undefined) throw new Unfit("it returns nothing: return the row, or null to drop it");
    if (value instanceof Promise) throw new Unfit("it is asynchronous: return the row itself");
    return isArray(value) ? value.map(left) : [left(value)];
  };

  let done = [], place = 0;
  const failed = (error) => {
    if (error instanceof Unfit) return {unfit: error.message};
    if (error instanceof Error) return {message: `${error.name}: ${error.message}`, stack: String(error.stack)};
    return {message: shown(error), stack: ""};
  };
  return {
    // Rows from a place on; what is done stays where it is when the engine ends it.
    run: (text, from, make) => {
      const rows = parse(text);
      done = [], place = from;
      for (; place < rows.length; place++) {
        let found;
        try {
          found = results_of(make()(entered(rows[place])));
        } catch (error) {
          if (error instanceof InternalError) throw error;  // memory is used up
          found = failed(error);
        }
        done.push(found);
      }
    },
    done: () => stringify(done),
  };
})
