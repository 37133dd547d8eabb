import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The one account of s3rver. */
const KEY = 'S3RVER'

/** What these tests use of s3rver, which has no types. */
interface S3rver {
  readonly httpServer: Server
  readonly logger: { silent: boolean }
  run(): Promise<AddressInfo>
}
type S3rverClass = new (options: {
  readonly address: string
  readonly port: number
  readonly directory: string
  readonly silent: boolean
  readonly vhostBuckets: boolean
  readonly allowMismatchedSignatures: boolean
}) => S3rver

/** An S3 API with one empty bucket, for `await using`. */
export interface S3Server extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string
  readonly bucket: string
  /** The value of `--history` for this bucket, with a prefix. */
  readonly url: string
  /** What a client needs in its environment: endpoint, region and credentials. */
  readonly env: Readonly<Record<string, string>>
  /** Has a folder for each bucket, with the objects as files. */
  readonly directory: string
}

/**
 * Starts s3rver in this process, on a port of the kernel and with a fresh directory. It cannot list more than 1,000
 * objects: Node's OpenSSL has no DES, with which s3rver encrypts the tokens for further pages.
 */
export async function startS3(): Promise<S3Server> {
  const directory = await mkdtemp(join(tmpdir(), 'tidings-s3-'))
  const bucket = 'archive'
  await mkdir(join(directory, bucket))
  const S3rver = createRequire(import.meta.url)('@20minutes/s3rver') as S3rverClass
  const s3rver = new S3rver({
    address: '127.0.0.1',
    port: 0,
    directory,
    silent: true,
    vhostBuckets: false,
    // It computes wrong signatures for paths that end with a slash, as those of lists do. moto verifies them.
    allowMismatchedSignatures: true,
  })
  // Otherwise it writes to the console about requests that end after the server.
  s3rver.logger.silent = true
  const { port } = await s3rver.run()
  const endpoint = `http://127.0.0.1:${port}`
  return {
    endpoint,
    bucket,
    url: `s3://${bucket}/events`,
    env: s3Environment(endpoint, KEY, KEY),
    directory,
    [Symbol.asyncDispose]: async () => {
      s3rver.httpServer.closeAllConnections()
      await new Promise((resolve) => s3rver.httpServer.close(resolve))
      await rm(directory, { recursive: true })
    },
  }
}

export function s3Environment(
  endpoint: string,
  keyId: string,
  key: string,
): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: keyId,
    AWS_SECRET_ACCESS_KEY: key,
    // No test looks for a machine of AWS around it.
    AWS_EC2_METADATA_DISABLED: 'true',
  }
}
