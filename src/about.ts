/** Names the flags to look at when something the operator set does not work. */
export async function about<T>(flags: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${flags}: ${why}`, { cause })
  }
}
