import { ALLOWED } from '../decisions.ts'
import type { Authorizer } from '../gate.ts'

/** Allows everything to all authenticated users. Must be enabled explicitly. */
export const alwaysAllow: Authorizer = { decide: () => ALLOWED }
