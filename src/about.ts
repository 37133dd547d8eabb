/** Names the flags to look at when something the operator set does not work. */
export async function about<T>(flags: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${flags}: it does not work as given`, { cause })
  }
}
