import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type S3Server, s3Environment } from './s3.ts'

const root = join(import.meta.dirname, '../../.cache/moto/usr')
const START_MS_MAX = 30_000

/** Why tests cannot use moto, for `skip`. */
export const motoMissing: false | string =
  !existsSync(join(root, 'bin/moto_server')) && 'moto is not unpacked: npm run tools -- moto'

/** An S3 API that also has the token service and the identities of AWS, all at one address. */
export interface Moto extends Omit<S3Server, 'directory'> {
  /** Requests of IAM, as a query: `{ Action: 'CreateRole', RoleName: … }`. Returns the reply. */
  identity(query: Readonly<Record<string, string>>): Promise<string>
  /**
   * Verifies signatures and lets policies decide, after so many more requests. Until the first call, everything is
   * allowed.
   */
  enforce(options?: { readonly afterRequests: number }): Promise<void>
}

/** Starts moto on a port of the kernel, with an empty bucket. */
export async function startMoto(): Promise<Moto> {
  const child = spawn(...command(['--host=127.0.0.1', '--port=0']), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PYTHONHOME: root, PYTHONDONTWRITEBYTECODE: '1', NO_COLOR: '1' },
  })
  const said: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  child.once('error', reject)
  child.once('exit', () => reject(new Error(said.join('\n'))))
  const late = setTimeout(() => reject(new Error(said.join('\n'))), START_MS_MAX)
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line)
    const [, endpoint] = /Running on (http:\S+)/.exec(line) ?? []
    if (endpoint !== undefined) resolve(endpoint)
  })
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  try {
    const endpoint = await promise
    const bucket = 'archive'
    await request(`${endpoint}/${bucket}`, { method: 'PUT' })
    return {
      endpoint,
      bucket,
      url: `s3://${bucket}/events`,
      env: s3Environment(endpoint, 'any', 'any'),
      identity: (query) => identity(endpoint, query),
      enforce: async ({ afterRequests } = { afterRequests: 0 }) => {
        const body = String(afterRequests)
        await request(`${endpoint}/moto-api/reset-auth`, { method: 'POST', body })
      },
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  } finally {
    clearTimeout(late)
  }
}

/** It runs with its own loader and libraries, which are newer than those of the machine may be. */
function command(flags: readonly string[]): [string, string[]] {
  const [loader] = globSync(join(root, 'lib*/ld-linux-*.so.*'))
  const [libraries] = globSync(join(root, 'lib/*-linux-gnu'))
  if (loader === undefined || libraries === undefined) throw new Error(`no libraries in ${root}`)
  const programs = [join(root, 'bin/python3'), join(root, 'bin/moto_server')]
  return [loader, ['--library-path', libraries, ...programs, ...flags]]
}

function identity(endpoint: string, query: Readonly<Record<string, string>>): Promise<string> {
  return request(endpoint, {
    method: 'POST',
    body: new URLSearchParams({ ...query, Version: '2010-05-08' }),
    // moto reads the service from the credential, and does not verify it yet.
    headers: {
      authorization: 'AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/iam/aws4_request',
    },
  })
}

async function request(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(url, init)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url}: ${response.status} ${text}`)
  return text
}
