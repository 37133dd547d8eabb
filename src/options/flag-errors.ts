/** Prefixes an error with the flags that the operator has to check. */
export async function withFlagName<T>(flags: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${flags}: ${why}`, { cause })
  }
}
