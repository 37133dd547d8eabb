/** A program: puts an object into the store at the URL, reads it, and prints what came of it. */
import process from 'node:process'
import { StoreError } from '../../src/history/store/object-store.ts'
import { openStore } from '../../src/history/store/open-store.ts'

const [, , url = ''] = process.argv
const options = { signal: AbortSignal.timeout(20_000), bytesMax: 100 }

process.stdout.write(`${await probe()}\n`)

async function probe(): Promise<string> {
  try {
    // biome-ignore lint/style/noProcessEnv: its caller chooses the credentials.
    const store = await openStore(url, process.env)
    await store.put('probe', Buffer.from('it works'), options)
    return String(await store.get('probe', options))
  } catch (error) {
    if (error instanceof StoreError) return `${error.kind}: ${error.message}`
    return String(error)
  }
}
