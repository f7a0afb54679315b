"use strict";
// Takes away what would make a row another one when it is made again, and freezes the rest, so that
// no row leaves anything behind for the next one.
(function () {
  const absent = (what, way) => () => { throw new Error(`${what} is not available, as a row must become the same when it is made again: ${way}`); };
  const clock = "select now() in the query below, as a column of its rows";
  const {getOwnPropertyDescriptor, defineProperty, getPrototypeOf, freeze} = Object, {ownKeys} = Reflect;

  Math.random = absent("Math.random", "make a number of the row's own values");
  const Native = Date, native = Date.prototype, {parse, UTC} = Date;
  const ZONE = /(Z|GMT|UTC|[+-][0-9]{2}:?[0-9]{2})\s*(\(.*\))?$/i;
  const inUtc = (text) => {
    if (typeof text !== "string" || ZONE.test(text)) return parse(text);
    const of = parse(/T/.test(text) ? `${text}Z` : `${text} UTC`);
    return of === of ? of : parse(text);
  };
  const now = absent("the time of now", clock);
  globalThis.Date = function Date(...parts) {
    if (!new.target || !parts.length) now();
    const time = parts.length > 1 ? UTC(...parts) : typeof parts[0] === "string" ? inUtc(parts[0]) : parts[0];
    return Reflect.construct(Native, [time], new.target);
  };
  Date.prototype = native;
  Date.UTC = UTC, Date.parse = inUtc, Date.now = now;
  native.constructor = Date;
  for (const name of ["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds", "Day"]) {
    native[`get${name}`] = native[`getUTC${name}`];
    if (name !== "Day") native[`set${name}`] = native[`setUTC${name}`];
  }
  native.getTimezoneOffset = () => 0;
  for (const name of ["toString", "toLocaleString"]) native[name] = native.toUTCString;
  for (const name of ["toDateString", "toLocaleDateString"]) native[name] = function () { return this.toISOString().slice(0, 10); };
  for (const name of ["toTimeString", "toLocaleTimeString"]) native[name] = function () { return this.toISOString().slice(11, 19); };
  delete native.getYear, delete native.setYear;

  for (const name of ["queueMicrotask", "WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics", "performance", "navigator"]) delete globalThis[name];

  // What is inherited could not be set on objects any more where it is frozen: setting it makes an own property.
  for (const proto of [Object.prototype, Function.prototype, Error.prototype, TypeError.prototype, RangeError.prototype]) {
    for (const name of ownKeys(proto)) {
      const own = getOwnPropertyDescriptor(proto, name);
      if (!("value" in own) || !own.configurable || typeof name === "symbol") continue;
      const {value} = own;
      defineProperty(proto, name, {
        get: () => value,
        set(other) {
          if (this === proto) throw new TypeError(`'${name}' is read-only`);
          defineProperty(this, name, {value: other, writable: true, enumerable: true, configurable: true});
        },
        enumerable: false, configurable: false,
      });
    }
  }

  const seen = new Set();
  const left = [
    globalThis, getPrototypeOf(function* () {}), getPrototypeOf(async function () {}), getPrototypeOf(async function* () {}),
    getPrototypeOf([][Symbol.iterator]()), getPrototypeOf(""[Symbol.iterator]()), getPrototypeOf(new Map().entries()),
    getPrototypeOf(new Set().values()), getPrototypeOf("".matchAll(/a/g)), getPrototypeOf(Int8Array),
  ];
  while (left.length) {
    const one = left.pop();
    if (seen.has(one)) continue;
    seen.add(one);
    for (const name of ownKeys(one)) {
      const {value, get, set} = getOwnPropertyDescriptor(one, name);
      for (const each of [value, get, set]) {
        if (typeof each === "function" || typeof each === "object" && each !== null) left.push(each);
      }
    }
    const proto = getPrototypeOf(one);
    if (proto !== null) left.push(proto);
  }
  for (const one of seen) if (!ArrayBuffer.isView(one)) freeze(one);
})()
