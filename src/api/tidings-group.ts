/** The API group of the objects and configuration files that only this server has. */
export const TIDINGS_GROUP = 'tidings.dev'
export const TIDINGS_VERSION = 'v1alpha1'
export const TIDINGS_API_VERSION: string = `${TIDINGS_GROUP}/${TIDINGS_VERSION}`
