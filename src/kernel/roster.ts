/**
 * What comes and goes all the time, by its key. A Map makes itself a new table each time that one has been used up, and the old table keeps hold of the new
 * one: once a table has grown old, whatever passes through those after it outlives every quick collection of garbage. Here the tables hold
 * numbers, and what has gone is gone.
 */
export class Roster<Key extends string | number, Value> {
  readonly #places = new Map<Key, number>();
  readonly #values: (Value | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.size;
  }

  get(key: Key): Value | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  set(key: Key, value: Value): void {
    let place = this.#places.get(key);
    if (place === undefined) {
      place = this.#free.pop() ?? this.#values.length;
      this.#places.set(key, place);
    }
    this.#values[place] = value;
  }

  delete(key: Key): boolean {
    const place = this.#places.get(key);
    if (place === undefined) return false;
    this.#places.delete(key);
    this.#values[place] = undefined;
    this.#free.push(place);
    return true;
  }

  /** In the order in which they came. */
  *values(): Generator<Value, void, void> {
    for (const place of this.#places.values()) yield this.#values[place] as Value;
  }
}
