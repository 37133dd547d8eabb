import { errorIn } from '../lib/files/config-fields.ts'

/** Prefixes an error with the flags that the operator has to check. */
export async function withFlagName<T>(flags: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw errorIn(flags, cause)
  }
}
