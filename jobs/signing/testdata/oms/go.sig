{
  "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
  "verificationMaterial": {
    "publicKey": {
      "hint": "e8450dec4eb99dae995da9af1bc2cc9f76ed669ee2e744f57abba763df3e3f8e"
    }
  },
  "dsseEnvelope": {
    "payload": "eyJfdHlwZSI6Imh0dHBzOi8vaW4tdG90by5pby9TdGF0ZW1lbnQvdjEiLCAic3ViamVjdCI6W3sibmFtZSI6InNpbXBsZSIsICJkaWdlc3QiOnsic2hhMjU2IjoiOTI3NDUxMTBiMWFiNDM2ODQ3MWNiZTMxNjY0ZTEwMTc0ZTk1NGIxMTNhM2RmMzMzZGI4NjAzMTdiMmM2ZGVjNCJ9fV0sICJwcmVkaWNhdGVUeXBlIjoiaHR0cHM6Ly9tb2RlbF9zaWduaW5nL3NpZ25hdHVyZS92MS4wIiwgInByZWRpY2F0ZSI6eyJyZXNvdXJjZXMiOlt7ImFsZ29yaXRobSI6InNoYTI1NiIsICJkaWdlc3QiOiJiYzlhNzE3ZGI2MDY0YTMyY2JlOWVhZTZmYzQwNjUxZGQ2ZDM2ZWYxNzU3MTgzZjU5MGVmZjJiMTc2NWQ3ZWJjIiwgIm5hbWUiOiJzaWdubWUtMSJ9LCB7ImFsZ29yaXRobSI6InNoYTI1NiIsICJkaWdlc3QiOiIzMmRjYjFmOGUxYWU1MmQ1OTYzZTU2YTZiYTA2YWI1OGI0MjRjMTVlZDJhNmI3MGQyZmVjYTFkMDg5MzcwMDI4IiwgIm5hbWUiOiJzaWdubWUtMiJ9XSwgInNlcmlhbGl6YXRpb24iOnsiYWxsb3dfc3ltbGlua3MiOmZhbHNlLCAiaGFzaF90eXBlIjoic2hhMjU2IiwgImlnbm9yZV9wYXRocyI6WyJ0ZXN0L2Fzc2V0cy9tb2RlbHMvc2ltcGxlL2lnbm9yZS1tZSIsICJ0ZXN0L2Fzc2V0cy92ZXJpZnkvcG9zaXRpdmUva2V5LXNpbXBsZS1nby9idW5kbGUuc2lnIiwgIi5naXQiLCAiLmdpdGlnbm9yZSIsICIuZ2l0YXR0cmlidXRlcyIsICIuZ2l0aHViIiwgIi5naXRtb2R1bGVzIl0sICJtZXRob2QiOiJmaWxlcyJ9fX0=",
    "payloadType": "application/vnd.in-toto+json",
    "signatures": [
      {
        "sig": "MGUCMCkcqXri6u+/jVp2yUVPSv8kfr3E8ENPxyUux9gTb5Ot+4cFqnguVw1o1ugWKB2ExwIxAKdM4HnYWE7UwlpTgqBp8pPCpMUpZkMYa47wol4v8Ooes1kVR9YX0E3oYZCk7NnluA=="
      }
    ]
  }
}
