if(NOT TARGET tilewire_identity)
  return()
endif()
tilewire_test(identity_test SOURCES unit/identity_files_test.cc unit/identity_jwks_test.cc unit/identity_jwt_test.cc unit/identity_test.cc unit/identity_tokens_test.cc unit/identity_policy_test.cc DEPS tilewire_identity LABELS unit TIMEOUT 60)
