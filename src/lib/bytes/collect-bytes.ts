export async function collectBytes(
  source: AsyncIterable<Buffer>,
  bytesMax: number,
): Promise<Buffer | 'too-long'> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of source) {
    length += chunk.length
    if (length > bytesMax) return 'too-long'
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}
