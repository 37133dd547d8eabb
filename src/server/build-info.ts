import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { BuildInfo } from '../endpoints/server-info.ts'

/** The Kubernetes release whose API this server implements. */
const KUBERNETES = { major: '1', minor: '37', version: 'v1.37.0' } as const

const COMMIT_DIGITS = 12

/**
 * The Kubernetes version comes first, since clients compare it with their own; our version follows
 * as build metadata. `npm run build` records the commit; a server run from its sources has none.
 */
export function buildInfo(): BuildInfo {
  const build = readJson('../build.json')
  return {
    major: KUBERNETES.major,
    minor: KUBERNETES.minor,
    gitVersion: `${KUBERNETES.version}+tidings-${releaseVersion()}`,
    gitCommit: build['gitCommit'] ?? '',
    gitTreeState: build['gitTreeState'] ?? '',
    buildDate: build['buildDate'] ?? '1970-01-01T00:00:00Z',
    goVersion: process.version,
    compiler: 'node',
    platform: `${process.platform}/${process.arch}`,
  }
}

/** The version of this project, such as `1.2.3`. */
export function releaseVersion(): string {
  return readJson('../../package.json')['version'] ?? ''
}

/** The output of `--version`. */
export function versionLine(): string {
  const parts = [
    ...commitOf(buildInfo()),
    `Kubernetes ${KUBERNETES.version}`,
    `Node ${process.version}`,
  ]
  return `tidings v${releaseVersion()} (${parts.join(', ')})`
}

/** Empty where the commit is unknown: in the sources, and in builds from an archive. */
function commitOf({ gitCommit, gitTreeState }: BuildInfo): readonly string[] {
  if (gitCommit === '') return []
  const changed = gitTreeState === 'dirty' ? ' with changes' : ''
  return [`commit ${gitCommit.slice(0, COMMIT_DIGITS)}${changed}`]
}

/** Where `npm run build` writes the web page; a server run from its sources uses the last build. */
export function pageFolder(): string {
  return fileURLToPath(new URL('../../dist/ui', import.meta.url))
}

function readJson(path: string): Readonly<Record<string, string>> {
  try {
    return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
  } catch {
    // Only a build has build.json.
    return {}
  }
}
