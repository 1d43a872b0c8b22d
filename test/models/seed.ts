/** The same sequences on every run, so that a failure is never a matter of luck; another seed is one variable away. */
export const SEED = Number(process.env.GUILDHALL_TEST_SEED ?? 20_261_115);

/** How many orders are tried: all of them on a day with time (`npm run test:all`), else half. */
export function runsOf(place: { readonly name: string }, sqlite: number, postgres: number): number {
  const all = place.name === "sqlitePlace" ? sqlite : postgres;
  return process.env.GUILDHALL_TEST_ALL ? all : Math.ceil(all / 2);
}
