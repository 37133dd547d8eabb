/** Which version may follow which (semantic versioning, without build metadata). */

export interface Semver {
  readonly major: number
  readonly minor: number
  readonly patch: number
  /** Such as `rc.1`; undefined for a release. */
  readonly preRelease: string | undefined
}

/** Undefined when this is not a version. */
export function parseVersion(text: string): Semver | undefined {
  const match = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?$/.exec(text)
  if (match === null) return undefined
  const [, major, minor, patch, preRelease] = match
  return { major: Number(major), minor: Number(minor), patch: Number(patch), preRelease }
}

/** The versions that may follow: the next patch, minor and major version. */
export function versionsAfter({ major, minor, patch, preRelease }: Semver): readonly string[] {
  // 1.2.0 follows 1.2.0-rc.1.
  const own = preRelease === undefined ? [] : [`${major}.${minor}.${patch}`]
  return [...own, `${major}.${minor}.${patch + 1}`, `${major}.${minor + 1}.0`, `${major + 1}.0.0`]
}

/** Drops the pre-release: 1.2.0-rc.1 may be released whenever 1.2.0 may. */
export function releaseOf({ major, minor, patch }: Semver): string {
  return `${major}.${minor}.${patch}`
}
