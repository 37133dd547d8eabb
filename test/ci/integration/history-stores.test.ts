/** The stores of the archive: a directory, and two implementations of the S3 API. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { openStore } from '../../../src/history/store/open-store.ts'
import { motoMissing, startMoto } from '../../support/moto.ts'
import { objectStoreContract, type StoreUnderTest } from '../../support/object-store-contract.ts'
import { type S3Server, startS3 } from '../../support/s3.ts'

objectStoreContract('a directory', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-directory-'))
  return {
    store: await openStore(`file://${folder}/archive`, {}),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
})
// s3rver fails at the end of a page, since it encrypts its tokens with DES.
objectStoreContract('a bucket of s3rver', () => bucketOf(startS3()), { many: 200 })
objectStoreContract('a bucket of moto', () => bucketOf(startMoto()), { skip: motoMissing })

async function bucketOf(
  starting: Promise<Pick<S3Server, 'env' | 'url' | typeof Symbol.asyncDispose>>,
): Promise<StoreUnderTest> {
  const s3 = await starting
  // biome-ignore lint/style/noProcessEnv: the SDK reads credentials there and nowhere else.
  Object.assign(process.env, s3.env)
  return {
    store: await openStore(s3.url, s3.env),
    [Symbol.asyncDispose]: () => s3[Symbol.asyncDispose](),
  }
}
