/** The same sequences on every run, so that a failure is never a matter of luck; another seed is one variable away. */
export const SEED = Number(process.env.GUILDHALL_TEST_SEED ?? 20_261_115);
