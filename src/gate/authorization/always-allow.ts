import type { Authorizer } from '../decisions.ts'
import { ALLOWED } from '../decisions.ts'

/** Allows everything to all authenticated users. Must be enabled explicitly. */
export const alwaysAllow: Authorizer = { decide: () => ALLOWED }
